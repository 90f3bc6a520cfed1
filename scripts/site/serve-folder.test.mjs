import t from 'tap'
import { serveFolder } from './serve-folder.mjs'

await t.test('the root of the host leads to the documentation', async (test) => {
  const out = test.testdir({ docs: { 'index.html': 'first' } })
  const server = await serveFolder(out, 0, '/docs/')
  test.teardown(() => server.close())
  const origin = `http://127.0.0.1:${server.address().port}`
  const first = await fetch(`${origin}/`)
  test.equal(first.url, `${origin}/docs/`)
  test.equal(await first.text(), 'first')
  test.equal((await fetch(`${origin}/other/`)).status, 404)
})

await t.test('a site may be the root itself', async (test) => {
  const server = await serveFolder(test.testdir({ 'index.html': 'root' }), 0, '/')
  test.teardown(() => server.close())
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`)
  test.equal(await answer.text(), 'root')
})
