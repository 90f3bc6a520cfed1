// A comment names what it describes: it begins with a verb or a noun.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'

const ROOT = resolve(import.meta.dirname, '..', '..')
/** The begin of a block or of a line, after code too; `https://` begins none. */
const BEGIN = /(?:\/\*\*?\s*(?:\n\s*\*\s*)?|(?<![:\w'"`/])\/\/ +)(?:Of|What)\b/g
const ANY_MORE = /^\s*(?:\*|\/\*|\/\/).*\bany more\b/gm

/** Where comments of a text begin with a word that says not what they describe, by line. */
function unclear(text) {
  const lineOf = (index) => text.slice(0, index).split('\n').length
  return [...text.matchAll(BEGIN), ...text.matchAll(ANY_MORE)].map(({ index, 0: found }) => [
    lineOf(index + found.length),
    found.trim().split('\n').at(-1),
  ])
}

await test('no comment begins with "Of" or "What", and none says "any more"', async (t) => {
  const listed = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.cts', '*.mjs'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const files = listed
    .trim()
    .split('\n')
    .filter((file) => !file.includes('/gen/') && existsSync(join(ROOT, file)))
  t.ok(files.length > 1500, `${files.length} files`)
  const found = files.flatMap((file) =>
    unclear(readFileSync(join(ROOT, file), 'utf8')).map(
      ([line, text]) => `${file}:${line}: ${text}`,
    ),
  )
  t.same(found, [])
})

await test('such comments are found', async (t) => {
  // In parts, or this file would have such comments itself.
  const [of, what, more] = ['Of', 'What', 'any']
  const text = `/** ${of} a b. */\nx // ${what} is it\n/**\n * ${what} it does.\n */\n// Not here ${more} more.\n`
  t.same(
    unclear(text).map(([line]) => line),
    [1, 2, 4, 6],
  )
  t.same(unclear("// Offers many more.\nfetch('https://Of.example')\n"), [])
})
