import { z } from 'zod'

/** Makes the schema of an option that names an entry of a table. */
export function keyOption<const Table extends object>(table: Table, about: string) {
  const isKey = (key: string): key is Extract<keyof Table, string> => key in table
  return z.enum(Object.keys(table).filter(isKey)).describe(about)
}
