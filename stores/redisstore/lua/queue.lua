-- The queue of a name. These keys are there only while somebody stands in line,
-- which the counter's bit says:
--   queue   sorted set: OWNER by ticket, so in order of (ticket, OWNER)
--   stay    sorted set: OWNER by the end of its entry
--   turn    sorted set: OWNER by the end of its turn, of those that have one
--   line    hash: OWNER -> "attempt mode claim channel"; the channel of the waiter's process, or "-"
-- A turn is no vote: all of this only ever refuses grants. docs/waiting.md has
-- the rules, and internal/model/queue.go says them in Go.
local STAY = 60000000 -- an entry's longest life, in microseconds
local asking          -- the attempt that stands in line by this very request
local ticket_given    -- the ticket to answer a waiter with
local made            -- what line returns, made when it is needed
local forcing = false -- by this very request

local function line()
  if made then return made end
  local q = {}
  made = q
  local order, stays, turns, lines = other('queue'), other('stay'), other('turn'), other('line')
  local settled = false -- the turns are those of the queue as it is

  -- entry returns the attempt, mode, claim and channel of a waiter.
  local entries = {} -- that were read in this call
  function q.entry(who)
    local e = entries[who]
    if not e then
      local a, m, c, channel = match(call('HGET', lines, who) or '', '^(%d+) (%a) (%d+) (.*)$')
      e = {tonumber(a or ''), m, tonumber(c or ''), channel}
      entries[who] = e
    end
    return e[1], e[2], e[3], e[4]
  end

  -- clear drops what is left of a queue whose counter was deleted.
  function q.clear() call('DEL', order, stays, turns, lines) end

  function q.drop(who)
    if call('ZREM', order, who) == 0 then return end
    call('ZREM', stays, who)
    call('ZREM', turns, who)
    call('HDEL', lines, who)
    entries[who], settled = nil, false
  end

  -- put keeps an entry in place of any other of its owner. One that moves has
  -- no turn.
  function q.put(who, m, ticket, keep, claim, channel)
    local before = q.entry(who) and q.ticket(who)
    if before and before ~= ticket then call('ZREM', turns, who) end
    call('ZADD', order, fmt('%.0f', ticket), who)
    call('ZADD', stays, fmt('%.0f', now + keep), who)
    call('HSET', lines, who, fmt('%.0f %s %.0f %s', asking, m, claim, channel))
    entries[who], settled = {asking, m, claim, channel}, false
    -- No name is idle in which somebody stands in line: the counter has the bit
    -- that says so, and the vote says how the last holder ended.
    if min(call('PTTL', order), call('PTTL', KEYS[3])) < STAY / 1000 + 1000 then
      for _, key in ipairs({order, stays, lines, KEYS[2], KEYS[3]}) do call('PEXPIRE', key, KEEP) end
    end
  end

  -- settle drops the entries that are over, and brings near what lies far.
  function q.settle()
    for _, who in ipairs(call('ZRANGEBYSCORE', stays, '-inf', fmt('%.0f', now))) do q.drop(who) end
    for _, who in ipairs(call('ZRANGEBYSCORE', stays, fmt('(%.0f', now + STAY), '+inf')) do
      call('ZADD', stays, fmt('%.0f', now + STAY), who)
    end
  end

  function q.others() return call('ZCARD', order) - (call('ZSCORE', order, owner) and 1 or 0) end
  function q.ticket(who) return tonumber(call('ZSCORE', order, who) or '') end
  function q.rank(who) return call('ZRANK', order, who) end

  -- turn is the end of a waiter's turn, which lasts for its claim, or nil.
  function q.turn(who, claim)
    local stop = tonumber(call('ZSCORE', turns, who) or '')
    if stop and stop > now + claim then -- the clock went back
      stop = now + claim
      call('ZADD', turns, fmt('%.0f', stop), who)
    end
    return stop
  end

  function q.head() return call('ZRANGE', order, 0, 0)[1] end

  -- leads reports whether a waiter that asks at this ticket, or at its own, is
  -- the head of the line, and returns the ticket.
  function q.leads(who, ticket)
    local head = call('ZRANGE', order, 0, 0, 'WITHSCORES')
    local its = tonumber(head[2] or '')
    return head[1] == who and (ticket == 0 or ticket == its), its
  end

  -- say tells one waiter, and returns how many heard it, where that is known.
  local function say(channel, text)
    if channel == '-' then
      redis.pcall('PUBLISH', other('wake'), text)
      return 1
    end
    local heard = redis.pcall('PUBLISH', channel, text .. ' ' .. other('wake'))
    return CLUSTER and 1 or heard
  end

  -- turns gives their turns to those at the front: a writer alone, or the
  -- readers before the first writer. It drops who let a turn pass, or whom
  -- nobody listens for any more, and takes the turns of all behind.
  -- It reports whether who asks is at the front.
  function q.turns()
    if quarantine > 0 or vote == 'w' then
      call('DEL', turns)
      settled = true
      return false
    end
    local front, at, first, given, told, claim, behind = {}, 0, nil, false, false, 0, nil
    local two, from = {}, 1 -- a head, and who stands behind it
    while true do
      if not two[from] then two, from = call('ZRANGE', order, at, at + 1), 1 end
      local who = two[from]
      if not who then break end
      local a, m, c, channel
      if first ~= 'w' then a, m, c, channel = q.entry(who) end
      if not m or (m == 'w' and (at > 0 or votes > 0)) then
        behind = who
        break
      end
      local stop, stays_in = q.turn(who, c), true
      if who == owner and a == asking then
        given = true
        call('ZADD', turns, fmt('%.0f', now + c), who)
      elseif stop then
        stays_in = stop > now
      else
        stays_in = say(channel, fmt('turn %s %.0f', who, number)) ~= 0
        if stays_in then
          given, told = true, true
          call('ZADD', turns, fmt('%.0f', now + c), who)
        end
      end
      from = from + 1
      if stays_in then
        first, claim, at, front[who] = m, c, at + 1, true
      else
        q.drop(who)
      end
    end
    for _, who in ipairs(call('ZRANGE', turns, 0, -1)) do
      if not front[who] then call('ZREM', turns, who) end
    end
    if given then call('PEXPIRE', turns, KEEP) end
    if told and behind then
      local a, _, _, channel = q.entry(behind)
      if behind ~= owner or a ~= asking then say(channel, fmt('next %s %.0f', behind, claim)) end
    end
    settled = true
    return front[owner]
  end

  function q.finish()
    if not settled then q.turns() end
  end
  return q
end

-- finish ends a verb: who waits, if the counter says that somebody does, is given its turn. That a vote ended is told to
-- those in no line, who cannot pass one, and to a holder whose vote was removed
-- by force: not to all who wait, since of many one can act on it. A cluster does
-- not count who listens, so there those behind several who died are to look too.
local function finish()
  if not waited and not forcing then return end
  if waited then line().finish() end
  if not ended then return end
  local someone = waited and line().head()
  if someone and not (forcing or CLUSTER) then return end
  local heard = redis.pcall('PUBLISH', other('wake'), 'changed')
  if waited and heard == 0 and not CLUSTER and not someone then -- a cluster's count is of one node's listeners
    waited = false
    write_counter('KEEPTTL')
  end
end
