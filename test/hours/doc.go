// Package hours holds tests of what takes minutes and hours: engines run unmodified against
// kubesim and a make-believe API, in simulated time, where a wait is as long as it says and a
// busy machine changes nothing. Only tests are here.
package hours
