// Package wire turns values into the JSON that the service speaks, and back.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Encode writes a value. Text stays as it is: what escapes HTML in JSON is for pages.
func Encode(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(buffer.String(), "\n"), nil
}

// Decode reads a value. A number in an `any` becomes a json.Number, so that no digit is lost.
func Decode(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON value")
	}
	return nil
}
