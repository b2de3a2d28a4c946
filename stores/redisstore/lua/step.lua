-- ReadStep. Replies {"step", step, base, end of the quarantine or 0, 1 when it
-- is over, how long it lasts}. The step of a record that was lost is no memory
-- and reads 0.
local stop = open(call('GET', KEYS[1]))
if stop then return stop end
return done({'step', lost == 1 and 0 or step, base, quarantine, quarantine > 0 and now >= quarantine and 1 or 0, max(quarantine - now, 0)})
