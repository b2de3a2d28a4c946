-- Serve. ARGV: the sets to serve and those served so far, two of each in
-- ascending order, "-" for one that is missing. Replies 1.
local record = call('GET', KEYS[1])
local stop = open(record, true)
if stop then return stop end
if not record then first = '-' end
if second ~= '-' and second < first then first, second = second, first end
local from = first == ARGV[3] and second == ARGV[4]
if not from and (first ~= ARGV[1] or second ~= ARGV[2]) then
  return {'mismatch', 0, 0, 0, 0, '', second == '-' and first or first .. ' and ' .. second}
end
first, second = ARGV[1], ARGV[2]
if second == '-' then far = now + MAXTTL end
head, changed = '1 ' .. RUN .. ' ' .. first .. ' ' .. second .. ' ', true
return done(1)
