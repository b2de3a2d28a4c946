//go:build !linux

package clock

// System returns the clock that leases use by default. On this operating
// system it is Go's monotonic clock: on Windows and macOS that may or may not
// count the time asleep, as the Go runtime chooses.
func System() Clock { return process }

// Machine returns a clock whose readings all processes of this machine share.
// This operating system has none: it is that of [System].
func Machine() Clock { return process }

var process = Go()
