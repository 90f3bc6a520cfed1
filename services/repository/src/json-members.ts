/** Copies the members of a JSON object; gives none if the value is not an object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** Parses a JSON text and copies its members, as `membersOf` does. @returns undefined if the text is not JSON. */
export function parseMembers(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return membersOf(JSON.parse(text))
  } catch {
    return undefined
  }
}
