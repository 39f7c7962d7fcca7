package browser

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestSite looks at each page that make docs makes: on the narrowest screen nothing but code, tables and pictures is scrolled to the
// side, everything can be read in light and dark, and nothing is asked of another server.
func TestSite(t *testing.T) {
	t.Parallel()
	b := tab{t: t, ctx: browse(t)}
	site := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", "github.com/trimtab-dev/trimtab/internal/site", "-repository", "../..", "-o", site)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	t.Cleanup(server.Close)
	pages := 0
	if err := fs.WalkDir(os.DirFS(site), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		pages++
		b.run(chromedp.EmulateViewport(320, 800), chromedp.Navigate(server.URL+"/"+name))
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > 320 {
			t.Errorf("%s is %d pixels wide on a screen of 320", name, wide)
		}
		for _, preferred := range []string{"light", "dark"} {
			b.run(scheme(preferred))
			if low := eval[[]string](b, contrasts); len(low) > 0 {
				t.Errorf("%s, %s: too little contrast of %q", name, preferred, low)
			}
		}
		if elsewhere := eval[[]string](b, `performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith(location.origin))`); len(elsewhere) > 0 {
			t.Errorf("%s loads %q", name, elsewhere)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if pages < 20 {
		t.Errorf("%d pages, want all documents", pages)
	}
	b.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(server.URL+"/docs/components.html"))
	if left := eval[bool](b, `document.querySelector("nav").getBoundingClientRect().right <= document.querySelector("main").getBoundingClientRect().left`); !left {
		t.Error("on a wide screen, the list of pages is not beside the page")
	}
}
