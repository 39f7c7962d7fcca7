package api

import (
	"encoding/base64"
	"errors"
	"fmt"
)

// Items returns the dependents of a component, from the readable inventory, the compact inventory, or the
// ConfigMaps in the component's namespace. shard returns the binaryData under [InventoryKey] of a ConfigMap in
// [ComponentStatus.InventoryShards]. It may be nil for components whose inventory is in the status. The result
// must not be changed.
//
// The error is an [InventoryError] if the inventory cannot be read.
func (s *ComponentStatus) Items(shard func(name string) ([]byte, error)) ([]InventoryItem, error) {
	switch {
	case s.CompactInventory != "":
		data, err := base64.StdEncoding.DecodeString(s.CompactInventory)
		if err != nil {
			return nil, &InventoryError{Where: "status.compactInventory", Err: err}
		}
		items, err := DecodeInventory(data)
		if err != nil {
			return nil, &InventoryError{Where: "status.compactInventory", Err: err}
		}
		return items, nil
	case len(s.Inventory) > 0, len(s.InventoryShards) == 0:
		return s.Inventory, nil
	case shard == nil:
		return nil, errors.New("the inventory is in ConfigMaps, and nothing is given that reads them")
	}
	var all []InventoryItem
	for _, name := range s.InventoryShards {
		data, err := shard(name)
		if err != nil {
			return nil, err
		}
		items, err := DecodeInventory(data)
		if err != nil {
			return nil, &InventoryError{Where: "ConfigMap " + name, Err: err}
		}
		all = append(all, items...)
	}
	return all, nil
}

// InventoryKey is the key in the binaryData of ConfigMaps that contain a part of an inventory.
const InventoryKey = "items"

// InventoryError is the error of an inventory that cannot be read.
type InventoryError struct {
	// Where says which part it is.
	Where string
	Err   error
}

// Error says what is wrong and what to do.
func (e *InventoryError) Error() string {
	return fmt.Sprintf("the inventory in %s cannot be read: %v", e.Where, e.Err)
}

// Unwrap returns the cause.
func (e *InventoryError) Unwrap() error { return e.Err }
