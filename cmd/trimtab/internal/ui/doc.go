// Package ui serves a dashboard of what needs attention in a cluster: the objects of operators that are not ready, worst
// first, and for each one why, its conditions, and what it is made of. It shows what package model says, reads with the
// permissions of whoever started it, and keeps what is on the screen current by server-sent events.
//
// The server is for one person on one machine. It listens on loopback, answers requests to its own address alone, and wants a
// key, which is part of the address that it prints. Its actions are the only way to change something, and each is shown with its
// kubectl command. Browsers send the key to servers on other ports of the same address, too.
package ui
