-- What every script begins with. Go writes these literals in front, so that they
-- do not travel with each call:
--   RUN     run id of the server process that this text was loaded into
--   SET     fingerprint of the client's set, 16 hexadecimal digits
--   MAXTTL  longest TTL of the set, in microseconds
--   REST    for how long a counter is kept beyond MaxTTL: 10 minutes and 1 s, in milliseconds
--   KEEP    a counter's life: the two together, in milliseconds
--   GUARD   whether a server that may have forgotten is kept out
--   HEAD    how a record of this run and set alone begins
--   CLUSTER whether the server is one of several that share the names
-- A record reads "1 RUN SET SET2 step moved base quarantine lost". SET2 is "-"
-- but while a set is being changed; then the longest MaxTTL of the two follows
-- at the end. Times are microseconds of this server; a quarantine is its end,
-- or 0; lost is 1 while the step is the clock's and no memory, because there was
-- no record. Numbers stay below 2^53 and are written by %.0f, which is exact
-- where Lua's own conversion keeps 14 digits.
local call, match, sub, find, fmt = redis.call, string.match, string.sub, string.find, string.format
local floor, max, min = math.floor, math.max, math.min
local STEP, PERIOD, LIMIT, REACH = 67108864, 300000000, 9007199254740992, 1099511627776
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
