// Tests and benchmarks that need several modules. Imported and installed by
// nobody, which is why it alone may hold replace lines.
module github.com/trimtab-dev/trimtab/test

go 1.26.0

require github.com/trimtab-dev/trimtab v0.0.0

replace github.com/trimtab-dev/trimtab => ../
