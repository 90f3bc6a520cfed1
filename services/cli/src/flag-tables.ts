import { type FlagTable, renderFlagTable } from '@tutti/chassis'
import { loadCommands } from '@tutti/command-line/program'
import { KUBECTL_PROGRAM } from '@tutti/kubectl'
import { COMMANDS } from './commands.ts'

/** READMEs with the flags of commands that another package has. */
const READMES: ReadonlyMap<string, string> = new Map([
  ['step', 'services/step/README.md'],
  ['router', 'services/router/README.md'],
  ['fetch', 'services/step/README.md'],
])

/**
 * Builds the READMEs with the flag tables of all commands.
 *
 * @param read - reads a file's text, by its path from the root of the repository.
 * @returns texts of READMEs by path.
 * @throws Error if a command has no table.
 */
export async function buildFlagTables(
  read: (path: string) => string,
): Promise<ReadonlyMap<string, string>> {
  const commands = [
    ...(await loadCommands(COMMANDS)).map((command) => [`tutti ${command.name}`, command] as const),
    ...(await loadCommands(KUBECTL_PROGRAM.commands)).map(
      (one) => [`kubectl tutti ${one.name}`, one] as const,
    ),
  ]
  const texts = new Map<string, string>()
  for (const [program, { name, flags }] of commands) {
    if (Object.keys(flags).length === 0) continue
    const own = program.startsWith('kubectl') ? 'services/kubectl/README.md' : READMES.get(name)
    const path = own ?? 'services/cli/README.md'
    const text = texts.get(path) ?? read(path)
    texts.set(path, replaceFlagTable(text, program, flags))
  }
  return texts
}

/**
 * Replaces the first table of flags below a heading.
 *
 * @param program - name of the program, which the heading has after a backtick.
 * @throws Error if there is no such table.
 */
export function replaceFlagTable(text: string, program: string, flags: FlagTable): string {
  const sections = text.split(/^(?=## )/m)
  const section = sections.find((one) => new RegExp(`^## .*\`${program}[ \`]`).test(one))
  const table = section && /^\| flag .*\n(?:\|.*\n)*/m.exec(section)?.[0]
  if (section === undefined || table === undefined) {
    throw new Error(`want a heading with \`${program}\`, and a table below it that begins | flag |`)
  }
  // A function: a table may have `$&` in it.
  const written = section.replace(table, () => `${renderFlagTable(flags)}\n`)
  return sections.map((one) => (one === section ? written : one)).join('')
}
