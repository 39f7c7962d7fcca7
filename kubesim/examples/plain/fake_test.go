package plain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Fake is the vendor in memory, for tests.
type Fake struct {
	mu        sync.Mutex
	instances map[string]Instance // by tag
}

// region: resources

// Resources lists what exists at the vendor.
func (f *Fake) Resources() (all []fault.Resource) {
	for _, i := range f.list() {
		all = append(all, fault.Resource{Kind: "instance", ID: i.ID, Owner: i.Owner, State: fmt.Sprint(i.Engine, " ", i.Size), Ready: true})
	}
	return all
}

// endregion: resources

// Clone copies the vendor.
func (f *Fake) Clone() fault.ExternalAPI {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Fake{instances: maps.Clone(f.instances)}
}

var _ fault.Cloner = (*Fake)(nil)

func (f *Fake) list() []Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.instances), func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
}

// Find returns the instance with a tag, nil if there is none.
func (f *Fake) Find(owner string) (*Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.instances[owner]; ok {
		return &i, nil
	}
	return nil, nil
}

// Create makes an instance.
func (f *Fake) Create(want Instance) (*Instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.instances[want.Owner]; ok {
		return nil, ErrTaken
	}
	if f.instances == nil {
		f.instances = map[string]Instance{}
	}
	want.ID = "i-" + want.Owner
	want.Host, want.Password = want.Name+".db.example.com", "secret of "+want.Name
	f.instances[want.Owner] = want
	return &want, nil
}

// errNoInstance is the answer to a change of what is not there.
var errNoInstance = errors.New("no such instance")

// Resize changes an instance's size.
func (f *Fake) Resize(id string, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for owner, i := range f.instances {
		if i.ID == id {
			i.Size = size
			f.instances[owner] = i
			return nil
		}
	}
	return errNoInstance
}

// Delete removes an instance, if it is there.
func (f *Fake) Delete(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.instances, func(_ string, i Instance) bool { return i.ID == id })
	return nil
}

// Handler serves the vendor's API.
func (f *Fake) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /instances", func(w http.ResponseWriter, r *http.Request) {
		i, err := f.Find(r.URL.Query().Get("owner"))
		if i == nil {
			reply(w, []Instance{}, err)
			return
		}
		reply(w, []Instance{*i}, err)
	})
	mux.HandleFunc("POST /instances", func(w http.ResponseWriter, r *http.Request) {
		var want Instance
		if err := json.NewDecoder(r.Body).Decode(&want); err != nil {
			reply(w, nil, err)
			return
		}
		made, err := f.Create(want)
		reply(w, made, err)
	})
	mux.HandleFunc("PATCH /instances/{id}", func(w http.ResponseWriter, r *http.Request) {
		var change Instance
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			reply(w, nil, err)
			return
		}
		reply(w, nil, f.Resize(r.PathValue("id"), change.Size))
	})
	mux.HandleFunc("DELETE /instances/{id}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, nil, f.Delete(r.PathValue("id")))
	})
	return mux
}

// reply answers with JSON, or with the status that an error deserves.
func reply(w http.ResponseWriter, answer any, err error) {
	switch {
	case errors.Is(err, ErrTaken):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, errNoInstance):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client is gone if this fails
	}
}
