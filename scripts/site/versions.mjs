/** @returns the versions with one more, newest first; a prerelease stands behind its release. */
export function addVersion(versions, version) {
  parse(version)
  return [...new Set([...versions, version])].toSorted(compare)
}

/** @returns the version that readers want: the newest release, or the newest prerelease while there is none. */
export function newestOf(versions) {
  return versions.find((version) => parse(version)[1] === '') ?? versions[0]
}

function compare(one, other) {
  const [[numbersA, preA], [numbersB, preB]] = [one, other].map(parse)
  const differing = numbersA.findIndex((number, i) => number !== numbersB[i])
  if (differing !== -1) return numbersB[differing] - numbersA[differing]
  if (preA === preB) return 0
  if (preA === '' || preB === '') return preA === '' ? -1 : 1
  return preB.localeCompare(preA, 'en', { numeric: true })
}

function parse(version) {
  const [, core, prerelease = ''] = /^(\d+\.\d+\.\d+)(?:-(.+))?$/.exec(version) ?? []
  if (core === undefined)
    throw new Error(`versions.json: got ${version}, want a version such as 1.2.3`)
  return [core.split('.').map(Number), prerelease]
}

/**
 * The pages without a version, by path: each forwards to the newest version, with the anchor of the address. Errors carry the
 * second one's address.
 */
export function forwardingPages(newest) {
  return new Map([
    ['index.html', forwardTo(`./${newest}/`)],
    ['errors/index.html', forwardTo(`../${newest}/errors.html`)],
  ])
}

function forwardTo(address) {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tutti</title>
<meta http-equiv="refresh" content="1; url=${address}">
<script>location.replace(${JSON.stringify(address)} + location.hash)</script>
<p><a href="${address}">Documentation of Tutti</a></p>
</html>
`
}
