-- A name. Its keys lie in the record's slot; those that a call reads each time
-- are declared, and the others are named after them:
--   KEYS[2] vote     "w OWNER attempt token end since last label", or "r last" while readers hold
--   KEYS[3] count    "number w" or "number r": who it was last given to. "-" stands for no number, and a
--                    capital says that somebody waits
--   KEYS[4] tomb     the highest attempt of this owner that is refused
--   read             hash: OWNER -> "attempt token since label", the readers
--   ends             sorted set: OWNER by end
--   forced           hash: OWNER -> "end label", whose vote was removed by force
-- last says how the holder before ended: u, r or e (unknown, released,
-- expired). The vote alone says whether anybody holds, so that deleting it by
-- hand frees the name and leaves the counter. It outlives its end by as much
-- as the counter does, which is how the next owner learns of the expiry.
local votes = 0      -- live votes
local vote           -- 'w', 'r' or nil: the mode of the live votes
local last = 'u'     -- how the holder before ended
local id, attempt, token, ends, since, label -- a writer's vote
local owner          -- who asks
local ended = false  -- a vote ended in this call

-- other is the name of another key, or of the channel "wake".
local function other(kind)
  local tag = sub(KEYS[1], 1, -7)
  return tag .. kind .. sub(KEYS[2], #tag + 5)
end

local function write_vote(...)
  call('SET', KEYS[2], fmt('w %s %.0f %.0f %.0f %.0f %s %s', id, attempt, token, ends, since, last, label), ...)
end

-- reader returns the attempt, token, end, start and label of a reader.
local function reader(owner)
  local entry = call('HGET', other('read'), owner)
  if not entry then return end
  local m, t, s, l = match(entry, '^(%d+) (%d+) (%d+) (.*)$')
  return tonumber(m), tonumber(t), tonumber(call('ZSCORE', other('ends'), owner)), tonumber(s), l
end

local function drop_reader(owner)
  call('HDEL', other('read'), owner)
  call('ZREM', other('ends'), owner)
end

-- settle parses the vote, drops what is over and brings near what lies far.
local function settle(text, known)
  if not text then
    if known then last = 'r' end
    return
  end
  if sub(text, 1, 1) == 'w' then
    id, attempt, token, ends, since, last, label = match(text, '^w (%x+) (%d+) (%d+) (%d+) (%d+) (%a) (.*)$')
    attempt, token, ends, since = tonumber(attempt), tonumber(token), tonumber(ends), tonumber(since)
    if ends <= now then
      if ends > 0 then -- an end that was seen stays one when the clock goes back
        ends, ended = 0, true
        write_vote('KEEPTTL')
      end
      id, last = nil, 'e'
      return
    end
    vote, votes = 'w', 1
    if ends > far then
      ends = far
      write_vote('KEEPTTL')
    end
    return
  end
  last = sub(text, 3, 3)
  local gone = call('ZRANGEBYSCORE', other('ends'), '-inf', fmt('%.0f', now))
  for _, owner in ipairs(gone) do drop_reader(owner) end
  for _, owner in ipairs(call('ZRANGEBYSCORE', other('ends'), fmt('(%.0f', far), '+inf')) do
    call('ZADD', other('ends'), fmt('%.0f', far), owner)
  end
  votes = call('ZCARD', other('ends'))
  if #gone > 0 or votes == 0 then last = 'e' end
  ended = #gone > 0
  if votes > 0 then
    vote = 'r'
    if #gone > 0 then call('SET', KEYS[2], 'r e', 'KEEPTTL') end
  end
end

-- write makes id the writer.
local function write()
  if vote == 'r' then call('DEL', other('read'), other('ends')) end
  vote, votes = 'w', 1
  write_vote('PX', KEEP)
end

-- read puts a reader in. What an earlier vote left that was deleted by hand
-- must not come to life again beside the first.
local function read(owner, m, t, e, s, l)
  if vote ~= 'r' then call('DEL', other('read'), other('ends')) end
  vote = 'r'
  call('HSET', other('read'), owner, fmt('%.0f %.0f %.0f %s', m, t, s, l))
  call('ZADD', other('ends'), fmt('%.0f', e), owner)
  call('PEXPIRE', other('read'), KEEP)
  call('PEXPIRE', other('ends'), KEEP)
  call('SET', KEYS[2], 'r ' .. last, 'PX', KEEP)
  votes = call('ZCARD', other('ends'))
end

-- The counter: its number, whether a writer had it last, whether there is one;
-- and whether somebody waits for the name.
local number, by_writer, known, waited

local function open_counter(text)
  local n, by = match(text or '', '^(%S+) (%a)$')
  waited, by_writer = by == 'W' or by == 'R', by == 'w' or by == 'W'
  number = tonumber(n or '')
  known = number ~= nil
  number = number or step * STEP
end

local function write_counter(...)
  local by = by_writer and 'w' or 'r'
  call('SET', KEYS[3], (known and fmt('%.0f ', number) or '- ') .. (waited and string.upper(by) or by), ...)
end

-- count raises the counter to a token given to a writer or a reader, and moves
-- the step when the counter outgrows it: it could else be dropped while a new
-- name starts below it.
local function count(given, writer)
  if given > number then
    number, by_writer = given, writer
  elseif given == number and writer then
    by_writer = true
  end
  if number >= (step + 1) * STEP then
    step, moved, changed = max(step + 1, floor(now / PERIOD), floor(number / STEP)), now, true
  end
  known = true
  write_counter('PX', KEEP)
end

local function out_of_reach(least)
  return least > max(floor(now / PERIOD) * STEP, base) + REACH
end
