-- A writer that holds stays.
repeat
  local vote, counter = got[k], got[k + 1]
  if not vote or not counter then break end
  local at, ttl, least = match(packed, '^%d+() (%d+) (%d+)$', 34)
  local who = 'w ' .. sub(packed, 1, at - 1) .. ' '
  if find(vote, who, 1, true) ~= 1 then break end
  local token, ends, rest, last = match(vote, '^(%d+) (%d+)() %d+ (%a) ', #who + 1)
  local number = tonumber((match(counter, '^(%d+) [wr]$')))
  if not token or not number or ends + 0 <= now or ends + 0 > now + MAXTTL then break end
  if least + 0 > token + 0 then token = least end
  if least + 0 > reach or token + 0 >= full or number >= full then break end
  if ends + 0 < now + ttl then
    if ttl ~= ttl_seen then ttl_seen, stop_seen = ttl, fmt('%.0f', now + ttl) end
    ends = stop_seen
  end
  local raised = token .. ' w'
  if number > token + 0 or counter == raised then
    call('PEXPIRE', KEYS[k + 1], KEEP)
  elseif redis.pcall('SET', KEYS[k + 1], raised, 'PX', KEEP).err then
    break
  end
  call('SET', KEYS[k], who .. token .. ' ' .. ends .. sub(vote, rest), 'PX', KEEP)
  reply = token .. ' ' .. last
until true
