const CONTROLS = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

/**
 * Escapes control characters, so that a text stays on one line and holds no terminal sequences. Each one is escaped as in JSON,
 * so a JSON text keeps its meaning.
 */
export function printable(text: string): string {
  return text.replace(CONTROLS, (control) =>
    Array.from({ length: control.length }, (_, i) => escapeUnit(control.charCodeAt(i))).join(''),
  )
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}
