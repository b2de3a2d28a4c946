-- Acquire. ARGV[1] is packed: owner, attempt, TTL in microseconds, floor (of a
-- repair: the token), a letter each for kind, mode and way to wait, label.
local try, ttl, least, kind, mode, wait, text
owner, try, ttl, least, kind, mode, wait, text = match(ARGV[1], '^(%x+) (%d+) (%d+) (%d+) (%a)(%a)(%a) (.*)$')
try, ttl, least = tonumber(try), tonumber(ttl), tonumber(least)
local got = call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local stop = open(got[1])
if stop then return stop end
open_counter(got[3])
settle(got[2], known)
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
local function held()
  if vote == 'r' then
    local latest = call('ZREVRANGE', other('ends'), 0, 1)
    local _, stops
    _, _, stops, _, holder = reader(latest[1] == owner and latest[2] or latest[1])
    left = stops - now
  end
  if wait == 'm' and not waited then
    waited = true
    if got[3] then write_counter('KEEPTTL') else write_counter('PX', KEEP) end
  end
  return refuse('held', m, left, holder)
end

if quarantine > 0 and (kind == 'n' or kind == 'f' or (kind == 'c' and mode == 'w')) then
  return refuse('quarantined', m, max(quarantine - now, 0))
end
if (m and m > try) or tonumber(got[4] or -1) >= try then
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

-- vote_anew gives a token that nobody had; a reader's may be another reader's.
local function vote_anew(writer)
  local given
  if writer or by_writer then
    given = max(number + 1, least, base + 1)
  else
    given = max(number, least, base, 1)
  end
  if given >= LIMIT then return invalid('no token is left below 2^53 for this name') end
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
    last, ended = 'u', true
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
if others > 0 and (mode == 'w' or vote == 'w') then return held() end
return vote_anew(mode == 'w')
