-- Acquire. ARGV[1] is packed: a letter each for kind, mode and way to wait;
-- owner, attempt, TTL in microseconds, floor (of a repair: the token); of who
-- queues: ticket, keep, claim and channel; in a new line the label.
local try, ttl, least, kind, mode, wait, at
kind, mode, wait, owner, try, ttl, least, at = match(ARGV[1], '^(%a)(%a)(%a)(%x+) (%d+) (%d+) (%d+)()')
local text = sub(ARGV[1], find(ARGV[1], '\n', at, true) + 1)
try, ttl, least = tonumber(try), tonumber(ttl), tonumber(least)
local ticket, keep, claim, channel
if wait == 't' or wait == 'q' then
  ticket, keep, claim, channel = match(ARGV[1], '^ (%d+) (%d+) (%d+) (%S+)', at)
  ticket, keep, claim = tonumber(ticket), tonumber(keep), tonumber(claim)
  ticket_given = now
end
local stop = open(got[1])
if stop then return stop end
open_counter(got[3])
settle(got[2], known)
if waited then line().settle() end
if out_of_reach(least) then return invalid('the floor of this request is out of reach') end

-- This owner's live vote (attempt m), how many others have, and the last of
-- those to end.
local m, t, e, s, l
local others, left, holder = votes, 0, ''
if vote == 'w' and id == owner then
  m, t, e, s, l, others = attempt, token, ends, since, label, 0
elseif vote == 'w' then
  left, holder = ends - now, label
elseif vote == 'r' then
  m, t, e, s, l = reader(owner)
  if m then others = votes - 1 end
end
local function held(ticket, rank)
  if vote == 'r' then
    local latest = call('ZREVRANGE', other('ends'), 0, 1)
    local _, stops
    _, _, stops, _, holder = reader(latest[1] == owner and latest[2] or latest[1])
    left = stops - now
  end
  return refuse('held', m or rank and keep, left, holder, ticket, rank)
end
local function wait_here()
  if waited then return end
  waited = true
  line().clear()
  if got[3] then write_counter('KEEPTTL') else write_counter('PX', KEEP) end
end

if quarantine > 0 and (kind == 'n' or kind == 'f' or (kind == 'c' and mode == 'w')) then
  return refuse('quarantined', m, max(quarantine - now, 0))
end
if (m and m > try) or tonumber(got[4] or -1) >= try or (waited and (line().entry(owner) or try) > try) then
  return refuse('held', m) -- a late request: its sender has gone on, or released
end
local same = m == try

-- place gives this owner the vote, in place of an older attempt's. It ends no
-- sooner than that one did, and began with it unless the mode changes.
local function place(writer, given)
  local start = m and writer == (vote == 'w') and s or now
  local stops = max(e or 0, now + ttl)
  if writer then
    id, attempt, token, ends, since, label = owner, try, given, stops, start, text
    write()
  else
    read(owner, try, given, stops, start, text)
  end
  return granted(given)
end

-- prolong answers for the vote that this attempt has: the request came twice.
local function prolong()
  count(t, vote == 'w')
  text = l
  return place(vote == 'w', t)
end

-- fresh is a token that nobody had; a reader's may be another reader's.
local function fresh(writer)
  if writer or by_writer then return max(number + 1, least, base + 1) end
  return max(number, least, base, 1)
end
local EXHAUSTED = 'no token is left below 2^53 for this name'
local function vote_anew(writer)
  local given = fresh(writer)
  if given >= LIMIT then return invalid(EXHAUSTED) end
  count(given, writer)
  return place(writer, given)
end

if kind == 'r' then
  local writer = mode == 'w'
  if same then writer = vote == 'w' end
  if others > 0 and (writer or vote == 'w') then return held() end
  if known and number > least then return refuse('held', m) end -- a later owner was here
  count(least, writer)
  return place(writer, least)
end
if kind == 'c' then
  if not m then return refuse('not held') end
  if same then return prolong() end
  if mode == 'w' then
    if others > 0 then return held() end
    return vote_anew(true)
  end
  ended = ended or vote == 'w'
  count(max(t, least), by_writer) -- a demoted writer's number stays a writer's
  return place(false, max(t, least))
end
if kind == 'f' then
  if others > 0 then
    last, ended, forcing = 'u', true, true
    local removed = vote == 'w' and {id} or call('ZRANGE', other('ends'), 0, -1)
    for _, voter in ipairs(removed) do
      if voter ~= owner then
        if vote == 'r' then drop_reader(voter) end
        call('HSET', other('forced'), voter, fmt('%.0f %s', now + MAXTTL, text))
      end
    end
    call('PEXPIRE', other('forced'), floor(MAXTTL / 1000) + 1000)
    votes = m and 1 or 0
  end
  if same then return prolong() end
  return vote_anew(true)
end
if same then return prolong() end

-- in_line refuses because of a vote, or of those who wait before.
local function in_line(word, ticket, rank, left)
  if word == 'held' and others > 0 and (mode == 'w' or vote == 'w') then return held(ticket, rank) end
  if word == 'held' then
    local head = line().head()
    local _, _, lasts = line().entry(head)
    left = max((line().turn(head, lasts) or now) - now, 0)
  end
  return refuse(word, m or keep, left, '', ticket, rank)
end

if wait == 't' and not waited and not m and (others == 0 or (mode == 'r' and vote == 'r')) then
  ticket_given = ticket > 0 and ticket or now -- nobody is before it, and no line is made
  return vote_anew(mode == 'w')
end
if wait == 't' and mode == 'w' and waited and votes == 0 then -- its turn, as a rule
  local leads, its = line().leads(owner, ticket)
  if leads then
    ticket_given = its
    return vote_anew(true)
  end
end
if keep then -- stand in line
  if fresh(mode == 'w') >= LIMIT then return invalid(EXHAUSTED) end
  wait_here()
  if m then -- of an earlier attempt: who stands in line holds nothing back
    ended, m, e = true, nil, nil
    if vote == 'r' then
      drop_reader(owner)
      if others > 0 then call('SET', KEYS[2], 'r r', 'KEEPTTL') end
    end
    votes, last = others, 'r'
    if others == 0 then
      call('DEL', KEYS[2])
      vote, id = nil, nil
    end
  end
  if ticket == 0 then ticket = line().ticket(owner) or now end
  asking, ticket_given = try, ticket
  line().put(owner, mode, ticket, keep, claim, channel)
  local mine = line().turns()
  if mine and wait == 't' then return vote_anew(mode == 'w') end
  return in_line(mine and 'ready' or 'held', ticket, line().rank(owner), claim)
end
if others > 0 and (mode == 'w' or vote == 'w') or (waited and line().others() > 0) then
  if wait == 'm' then wait_here() end
  return in_line('held', now, 0)
end
return vote_anew(mode == 'w')
