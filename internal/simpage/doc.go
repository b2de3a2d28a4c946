// Package simpage tells what happened in a simulated run: [Text] as lines, and
// [Page] as a web page with a space-time diagram. Both are pure functions of a
// trace, so that equal runs look equal.
package simpage
