// Package tagged is looked at by a test of trimtab lint. It imports little, because all of that is looked at, too.
package tagged

import _ "github.com/trimtab-dev/trimtab" // which makes this a package that is looked at
