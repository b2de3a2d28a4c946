package quorum

import "time"

// AskOrderOf shows in which order a set asks its members for a key.
func AskOrderOf(c *CombinedStore, key string) []int { return c.askOrder(key) }

// FingerprintOf shows what stands for a set.
func FingerprintOf(c *CombinedStore, maxTTL time.Duration) Fingerprint { return c.fingerprint(maxTTL) }
