-- Release. ARGV[1] is packed: owner, attempt, life of a tombstone in milliseconds
-- or 0. Replies 1 when the owner held or waited, 0 when nothing of it is here, -1
-- when a younger attempt is. It gives nothing away, so it writes no record, and
-- heeds it only where somebody waits; and it serves clients of every set, so
-- MAXTTL may be a stranger's and brings nothing near.
local try, entomb
owner, try, entomb = match(ARGV[1], '^(%x+) (%d+) (%d+)$')
try, entomb = tonumber(try), tonumber(entomb)
far = LIMIT
open_counter(got[3])
if waited then
  if open(got[1], true) then quarantine = far end -- who waits is told later
  open_counter(got[3])
  far = LIMIT
  line().settle()
end
settle(got[2], false)
local m
if vote == 'r' then
  m = reader(owner)
elseif id == owner then
  m = attempt
end
local reply = m and (m <= try and 1 or -1) or 0
if reply == 1 then
  ended = true
  if vote == 'r' then
    drop_reader(owner)
    if votes > 1 then call('SET', KEYS[2], 'r r', 'KEEPTTL') end
  end
  votes = votes - 1
  if votes == 0 then
    call('DEL', KEYS[2])
    vote = nil
  end
end
local waiting = waited and line().entry(owner)
if waiting then
  if waiting <= try then
    line().drop(owner)
    reply, ended = 1, ended or votes == 0
  elseif reply == 0 then
    reply = -1
  end
end
if entomb > 0 then
  local stone = tonumber(got[4] or 0)
  call('SET', KEYS[4], fmt('%.0f', max(stone, try)), 'PX', entomb)
end
finish()
return reply
