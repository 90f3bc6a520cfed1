import { useEffect, useState } from 'preact/hooks'
import { modelOfHash } from './links.ts'
import { ModelView } from './model-view.tsx'
import { ModelsView } from './models-view.tsx'

/** The page: the view that the address names. */
export function App() {
  const model = useAddress()
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to content
      </a>
      <header class="bar">
        <a class="brand" href="#/">
          <img src="/console/icon.svg" alt="" width="24" height="24" /> Tutti
        </a>
        <span class="quiet">console</span>
      </header>
      {model === undefined ? <ModelsView /> : <ModelView key={model} name={model} />}
    </>
  )
}

/** The model that the address names. */
function useAddress(): string | undefined {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const follow = (): void => setHash(location.hash)
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return modelOfHash(hash)
}

/** The address names a view, so it must not change. */
function skip(event: Event): void {
  event.preventDefault()
  document.getElementById('content')?.focus()
}
