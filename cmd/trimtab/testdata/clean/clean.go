// Package clean is looked at by a test of trimtab lint. It imports little, because all of that is looked at, too.
package clean

import _ "github.com/trimtab-dev/trimtab" // which makes this a package that is looked at
