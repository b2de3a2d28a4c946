// Package minitest runs the tests of package redisstore on miniredis, a server
// in the test's own process. It is a module of its own, so that who imports the
// store does not get miniredis as well.
package minitest
