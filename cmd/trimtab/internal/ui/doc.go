// Package ui serves a dashboard of what needs attention in a cluster: the objects of operators that are not ready, worst
// first, and for each one why, its conditions, and what it is made of. It shows what package model says, reads with the
// permissions of whoever started it, and keeps what is on the screen current by a stream of server-sent events.
//
// The page of an object draws its states and where it is among them ([machineOf]), what has happened on an axis of time ([axisOf]),
// what comes next and when ([nextOf]), and what it is made of, with the path to the root cause ([treeOf]). These functions are pure,
// and the scripts only draw what they return. A transition is shown if somebody has seen it: the operator, by its flight recorder;
// the object, by its status; or, where neither tells, the server itself, from one reading to the next.
//
// The server is for one person on one machine. It listens on loopback and answers requests to its own address alone. The address
// that it prints has a key behind the sign #, which browsers do not send; the page keeps it for its tab, and has it in a header of
// each request about the cluster. So servers on other ports of the address do not get it, as they would get a cookie. A new tab
// is opened with the address that was printed.
//
// Its actions are the only way to change something. Each is shown with its kubectl command and with what follows from it, and is
// done to the object that was shown, and not to another one that has its name by now, if what follows is still what was shown.
package ui
