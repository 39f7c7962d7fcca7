// Package browser tests the dashboard of trimtab in a real browser, Debian's Chromium, with objects on a real API server. The
// pictures of the dashboard in the documentation are taken by its test.
package browser
