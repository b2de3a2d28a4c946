-- Raise. ARGV: run id and end of the quarantine that is meant, or "" and 0; the
-- highest step of a quorum; and how: "quorum", "alone", "fresh", "forgotten", or
-- "promoted", which means no particular quarantine. Replies 1.
local run, meant, highest, how = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local stop = open(call('GET', KEYS[1]))
if stop then return stop end
local function refuse(word, why)
  return done({word, max(quarantine - now, 0), 0, 0, 1, '', why})
end
if how ~= 'promoted' and (quarantine ~= meant or (meant > 0 and run ~= RUN)) then
  if quarantine > 0 then return refuse('quarantined', 'the raise is meant for another quarantine') end
  return refuse('not held', 'the quarantine that the raise is meant for is over')
end
if how == 'forgotten' or how == 'promoted' then
  quarantine, changed = far, true
  return done(1)
elseif how == 'fresh' then
  quarantine, lost, changed = 0, 0, true
  return done(1)
elseif now < quarantine then
  return refuse('quarantined', "the quarantine's time is not over")
end
local periods, mark = floor(now / PERIOD)
if how == 'alone' then
  -- The clock's fraction, not its next step: a server that loses everything
  -- three times in five minutes must not start three times at one number.
  mark = max(periods * STEP + floor((now - periods * PERIOD) * STEP / PERIOD), (max(highest, lost == 1 and 0 or step) + 1) * STEP)
else
  mark = (max(highest, step, periods) + 1) * STEP
end
if mark >= LIMIT then
  return done(redis.error_reply('INVALID a raise above that step would use up the tokens'))
end
base = max(base, mark)
step, moved = max(step, floor(base / STEP)), now
quarantine, lost, changed = 0, 0, true
return done(1)
