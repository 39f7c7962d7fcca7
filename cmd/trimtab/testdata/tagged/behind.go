//go:build x && y

package tagged

import _ "github.com/trimtab-dev/trimtab" // which makes this a package that is looked at

//trimtab:allow nothing because there is no such analyzer
