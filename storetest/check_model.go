package storetest

var modelChecks []check
