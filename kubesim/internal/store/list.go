package store

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// retrySeconds is what the real server tells those who ask for data newer than it has.
const retrySeconds = 1

// GetList fills a list with the present objects under a prefix, or with those of the revision
// that the options name.
func (s *resource) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	prefix, err := storage.PrepareKey(s.prefix, key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	into, err := conversion.EnforcePtr(items)
	if err != nil || into.Kind() != reflect.Slice {
		return fmt.Errorf("need a pointer to a slice: %w", err)
	}
	at, from, err := storage.ValidateListOptions(prefix, versioner, opts)
	if err != nil {
		return err
	}
	p, err := From(ctx).list(prefix, !opts.Recursive, at)
	if err != nil {
		return err
	}
	if at == 0 {
		if err := notOlder(opts.ResourceVersion, p.rev); err != nil {
			return err
		}
	}
	return s.fill(list, into, p, prefix, from, opts)
}

// fill puts the rows of a page that match into a list, up to the limit asked for.
func (s *resource) fill(list runtime.Object, into reflect.Value, p page, prefix, from string, opts storage.ListOptions) error {
	rows := p.rows
	for len(rows) > 0 && rows[0].key < from {
		rows = rows[1:]
	}
	count, limit := int64(len(rows)), opts.Predicate.Limit
	if opts.ResourceVersion == "0" {
		limit = 0 // the watch cache answers such lists whole
	}
	last := ""
	for len(rows) > 0 && (limit == 0 || int64(into.Len()) < limit) {
		last = rows[0].key
		item, err := s.object(rows[0].entry)
		if err != nil {
			return err
		}
		if ok, err := opts.Predicate.Matches(item); err == nil && ok {
			into.Set(reflect.Append(into, reflect.ValueOf(item).Elem()))
		}
		rows = rows[1:]
	}
	if into.IsNil() {
		into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	}
	next, remaining, err := storage.PrepareContinueToken(last, prefix, p.rev, count, len(rows) > 0, opts)
	if err != nil {
		return err
	}
	return versioner.UpdateList(list, uint64(p.rev), next, remaining)
}

// notOlder checks that data of revision rev satisfies a reader that asked for at least asked.
func notOlder(asked string, rev int64) error {
	least, err := versioner.ParseResourceVersion(asked)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if int64(least) > rev {
		return storage.NewTooLargeResourceVersionError(least, uint64(rev), retrySeconds)
	}
	return nil
}
