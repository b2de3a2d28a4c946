-- The usual calls, which are nearly all: the record stands and no step is due,
-- nobody waits for the name, and its holder comes or goes in order. They need
-- little of what the scripts behind this know and pay for nothing else: no
-- function is made, and strings are cut and joined rather than parsed. They leave
-- the very keys, ends and replies that those scripts would, which
-- usual_test.go compares; where they cannot, they change nothing and leave
-- the call to them. The parts that follow, one a verb, take k, where the name's
-- keys begin, and packed; and set reply if the call was usual.
local got = call('MGET', unpack(KEYS)) -- what stands in each key, by the key's index
local steady = false -- the record may stay as it is
local start, lowest, full, reach -- a new name's number, the least token, the next step's first, the highest floor
local stamp -- now, as text
local ttl_seen, stop_seen -- the end of a vote that begins now, as text
if got[1] and find(got[1], HEAD, 1, true) == 1 then
  local step, moved, base = match(got[1], '^(%d+) (%d+) (%d+) 0 %d$', #HEAD + 1)
  if step then
    local clock, since = floor(now / PERIOD), now - moved
    steady = since >= 0 and (since < PERIOD or since < 2 * PERIOD and clock <= step + 0)
    start, lowest, full = step * STEP, base + 1, min((step + 1) * STEP, LIMIT)
    reach = max(clock * STEP, base) + REACH
  end
end
