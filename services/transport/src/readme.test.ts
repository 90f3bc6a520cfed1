import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSubjects, type Message } from '@tutti/protocol'
import t from 'tap'

const README = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')

/** Finds what stands first in the rows of a section's table. */
function rowsOf(section: string): readonly string[] {
  const [, text = ''] = README.split(`## ${section}\n`)
  const [body = ''] = text.split('\n## ')
  return [...body.matchAll(/^\| (\S+) +\|/gm)].map(([, cell = '']) => cell.replaceAll('`', ''))
}

await t.test('the table of subjects has those that members listen on', async (t) => {
  const subjects = buildSubjects({ prefix: 'p', repository: 'r' })
  const [, ...rows] = rowsOf('Subjects').filter((row) => !row.startsWith('-'))
  const named = rows.map((row) => `p.r.${row.replace('<member>', 'x')}`)
  const own = [
    subjects.heartbeat('x', 'router'),
    subjects.heartbeat('x', 'step'),
    subjects.control('x'),
    subjects.data('x'),
    subjects.ping('x'),
  ]
  const inbox = subjects.inbox('x')
  t.same(named.slice(0, own.length), own)
  t.ok(named.length > own.length)
  for (const answer of named.slice(own.length)) t.ok(answer.startsWith(`${inbox}.`), answer)
})

await t.test('the table of messages has every type', async (t) => {
  const types: Record<Message['type'], true> = {
    offer: true,
    accepted: true,
    refused: true,
    credit: true,
    resend: true,
    response: true,
    'response-credit': true,
    cancel: true,
    done: true,
  }
  const [, ...rows] = rowsOf('Messages').filter((row) => !row.startsWith('-'))
  t.same(rows.toSorted(), [...Object.keys(types), 'chunk'].toSorted())
})
