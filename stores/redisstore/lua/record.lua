-- The record of a server, and what every verb shares. Go writes these literals
-- in front, so that they do not travel with each call:
--   RUN     run id of the server process that this text was loaded into
--   SET     fingerprint of the client's set, 16 hexadecimal digits
--   MAXTTL  longest TTL of the set, in microseconds
--   GUARD   whether a server that may have forgotten is kept out
--   HEAD    how a record of this run and set alone begins
--   CLUSTER whether the server is one of several that share the names
-- A record reads "1 RUN SET SET2 step moved base quarantine lost". SET2 is "-"
-- but while a set is being changed; then the longest MaxTTL of the two follows
-- at the end. Times are microseconds of this server; a quarantine is its end,
-- or 0; lost is 1 while the step is the clock's and no memory, because there was
-- no record. Numbers stay below 2^53 and are written by %.0f, which is exact
-- where Lua's own conversion keeps 14 digits.
local call, match, sub, fmt = redis.call, string.match, string.sub, string.format
local floor, max, min = math.floor, math.max, math.min
local STEP, PERIOD, LIMIT, REACH = 67108864, 300000000, 9007199254740992, 1099511627776
local KEEP = floor(MAXTTL / 1000) + 601000 -- a counter's life: MaxTTL, 10 minutes' rest and 1 s, in milliseconds

local time = call('TIME')
local now = time[1] * 1000000 + time[2]
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
      far, KEEP = now + span, floor(span / 1000) + 601000
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
