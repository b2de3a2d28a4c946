// Package browsertest opens the pages of quorum sim explain in a real browser.
// It is a module of its own, so that nobody who builds the command gets what
// drives the browser.
package browsertest
