// Runs several test files in one process, one after the other: TUTTI_TEST_FILES='["FILE", ...]' run-batch.mjs SUITE
// The suite only names the process: tap names folders of tests after the arguments, all of which would be too long.
import { resolve } from 'node:path'
import { env } from 'node:process'
import { pathToFileURL } from 'node:url'
import t, { comment } from 'tap'

for (const file of JSON.parse(env.TUTTI_TEST_FILES)) {
  comment(`file: ${file}`)
  // A limit that a file sets is of its own tests, not of those that come after it.
  t.setTimeout(Number(env.TAP_TIMEOUT) * 1000)
  // oxlint-disable-next-line no-await-in-loop -- the tests of a file end before those of the next begin
  await import(pathToFileURL(resolve(file)).href)
}
// Not in a process that is dying: tap then lets every test go on.
await new Promise(setImmediate)
comment('all files ran')
