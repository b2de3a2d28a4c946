-- The record of a server, read and written whole.
local head, changed = HEAD, false
local step, moved, base, quarantine, lost = 0, 0, 0, 0, 0
local far = now + MAXTTL -- no end can lie further off, unless the clock went back
local first, second = SET, '-' -- the sets served

-- open reads the record and brings it up to now. It returns a reply when this
-- client may not go on. any says that the set of who asks does not count.
local function open(record, any)
  local run, at, g, m, b, q, l, span = RUN, #HEAD + 1, 0, 0, 0, 0, 1
  if record and sub(record, 1, #HEAD) ~= HEAD then
    local version
    version, run, first, second, at = match(record, '^(%d+) (%S+) (%S+) (%S+) ()')
    if version ~= '1' then
      return redis.error_reply('RECORD the record on this server has a format that this client does not know')
    end
    if not any and first ~= SET and second ~= SET then
      return {'mismatch', 0, 0, 0, 0, '', second == '-' and first or first .. ' and ' .. second}
    end
    head = '1 ' .. RUN .. ' ' .. first .. ' ' .. second .. ' '
  end
  if record then
    g, m, b, q, l, span = match(record, '^(%d+) (%d+) (%d+) (%d+) (%d) ?(%d*)$', at)
    if not g then
      return redis.error_reply('RECORD the record on this server is damaged')
    end
    if span ~= '' then -- a client of one set must not bring near what one of the other holds
      span = max(tonumber(span), MAXTTL)
      far, KEEP = now + span, floor(span / 1000) + REST
    end
  end
  step, moved, base, quarantine, lost = tonumber(g), tonumber(m), tonumber(b), tonumber(q), tonumber(l)
  local clock, since = floor(now / PERIOD), now - moved
  if since >= 2 * PERIOD or since >= PERIOD and clock > step or since < 0 then
    step, moved, changed = max(step + 1, clock), now, true
  end
  if not record or run ~= RUN then -- it may have forgotten
    quarantine, changed = GUARD and far or 0, true
    if not GUARD then lost = 0 end
  elseif quarantine > far then -- the clock went back
    quarantine, changed = far, true
  end
end

-- done writes what changed of the record, last of all, and replies.
local function done(reply)
  if changed then
    local tail = second == '-' and '' or fmt(' %.0f', far - now)
    call('SET', KEYS[1], head .. fmt('%.0f %.0f %.0f %.0f %d', step, moved, base, quarantine, lost) .. tail)
  end
  return reply
end
