-- A writer goes, and needs no tombstone. Whoever runs this part deletes the vote.
repeat
  local vote, counter = got[k], got[k + 1]
  if not vote or counter and find(counter, '[WR]$') or sub(packed, -2) ~= ' 0' then break end
  local who = 'w ' .. sub(packed, 1, -2)
  if find(vote, who, 1, true) ~= 1 then break end
  local ends = match(vote, '^%d+ (%d+) ', #who + 1)
  if not ends or ends + 0 <= now then break end
  reply = 1
until true
