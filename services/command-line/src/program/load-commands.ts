import type { Command, CommandEntry } from './command.ts'

/** Loads all commands of a list, in its order. */
export function loadCommands(entries: readonly CommandEntry[]): Promise<readonly Command[]> {
  return Promise.all(
    entries.map(async (entry) => {
      const { name, description } = entry
      return { name, description, ...(await entry.load()) }
    }),
  )
}
