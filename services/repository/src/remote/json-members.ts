/** The members of a JSON object; none if the value is no object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** As `membersOf` of a JSON text. @returns undefined for a text that is no JSON. */
export function parseMembers(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return membersOf(JSON.parse(text))
  } catch {
    return undefined
  }
}
