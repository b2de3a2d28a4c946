// Package rabbittest shows package watermillmw over a real RabbitMQ and real
// Redis servers. It is a module of its own, so that who imports the middleware
// gets neither client.
package rabbittest
