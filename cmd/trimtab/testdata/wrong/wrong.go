// Package wrong is looked at by a test of trimtab lint. It imports little, because all of that is looked at, too.
package wrong

import _ "github.com/trimtab-dev/trimtab" // which makes this a package that is looked at

//trimtab:allow nothing because there is no such analyzer
