// Package record holds the rows of the database as plain structs, and the states
// they can be in. It is a leaf that store, gateway and agentcore share; it knows
// no SQL.
package record
