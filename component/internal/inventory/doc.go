// Package inventory keeps the inventories of components: readable in the status, compact in the status, or in
// ConfigMaps, depending on their size. A pass sees the items alone.
package inventory
