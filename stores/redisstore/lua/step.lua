-- ReadStep. Replies {"step", step, base, end of the quarantine or 0, 1 when it
-- is over, how long it lasts}.
local stop = open(call('GET', KEYS[1]))
if stop then return stop end
return done({'step', step, base, quarantine, quarantine > 0 and now >= quarantine and 1 or 0, max(quarantine - now, 0)})
