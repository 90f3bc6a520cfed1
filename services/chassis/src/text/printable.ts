const CONTROLS = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

/** A text in one line, without control sequences of a terminal: each character of them as JSON escapes it. JSON stays the same JSON. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (control) =>
    Array.from({ length: control.length }, (_, i) => escapeUnit(control.charCodeAt(i))).join(''),
  )
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}
