import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const BUILT = join(import.meta.dirname, '..', '..', 'dist')

await t.test("nothing of Kubernetes' client is loaded for the types of its kinds", async (t) => {
  const files = globSync('**/*.js', { cwd: BUILT }).filter(
    (file) => !/\.test\.js$|^testing/.test(file),
  )
  t.ok(files.includes(join('kinds', 'pod.js')))
  const loading = files.filter((file) =>
    readFileSync(join(BUILT, file), 'utf8').includes('@kubernetes/client-node'),
  )
  t.same(loading, [])
})
