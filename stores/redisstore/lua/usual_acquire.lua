-- A new writer, or the repair of one, of a name that nobody holds. Where memory is full the first
-- write fails: nothing was done, and the whole script says so.
repeat
  local ways = sub(packed, 1, 3)
  if got[k] or ways ~= 'nwt' and ways ~= 'nwn' and ways ~= 'nwm' and ways ~= 'rwn' then break end
  local at, ttl, least, ticket = match(packed, '^%d+() (%d+) (%d+) ?(%d*)', 37)
  local number, last, tomb = start, 'u', got[k + 2]
  if got[k + 1] then
    number, last = tonumber((match(got[k + 1], '^(%d+) [wr]$'))), 'r'
  end
  if not number or tomb and (tonumber(tomb) or LIMIT) >= sub(packed, 37, at - 1) + 0 then break end
  least = least + 0
  local given = ways == 'rwn' and least or max(number + 1, least, lowest)
  if least > reach or given < number or given >= full then break end
  stamp = stamp or fmt('%.0f', now)
  if ttl ~= ttl_seen then ttl_seen, stop_seen = ttl, fmt('%.0f', now + ttl) end
  local token = fmt('%.0f', given)
  if redis.pcall('SET', KEYS[k + 1], token .. ' w', 'PX', KEEP).err then break end
  call('SET', KEYS[k], 'w ' .. sub(packed, 4, at - 1) .. ' ' .. token .. ' ' .. stop_seen .. ' ' .. stamp .. ' ' .. last .. ' '
    .. sub(packed, find(packed, '\n', at, true) + 1), 'PX', KEEP)
  reply = token .. ' ' .. last
  if ticket == '0' then
    reply = reply .. ' ' .. stamp
  elseif ticket ~= '' then
    reply = reply .. ' ' .. ticket
  end
until true
