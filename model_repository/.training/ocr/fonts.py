"""The font families that the text is drawn with. Packages and licences: model_repository/README.md."""

from importlib.util import find_spec
from pathlib import Path

DEBIAN = Path("/usr/share/fonts")

# family -> (where its files lie: a folder of Debian's or a Python module; the files)
TRAINING = {
    "DejaVu Sans": ("matplotlib", "mpl-data/fonts/ttf/DejaVuSans{,-Bold,-Oblique}.ttf"),
    "DejaVu Sans Mono": ("matplotlib", "mpl-data/fonts/ttf/DejaVuSansMono{,-Bold}.ttf"),
    "DejaVu Serif": ("matplotlib", "mpl-data/fonts/ttf/DejaVuSerif{,-Bold,-Italic}.ttf"),
    "Roboto": ("font_roboto", "files/Roboto-{Regular,Bold,Italic,Light}.ttf"),
    "Lato": ("font_lato", "files/Lato-{Regular,Bold,Italic,Light}.ttf"),
    "Caladea": ("font_caladea", "files/Caladea-{Regular,Bold,Italic}.ttf"),
    "Hanken Grotesk": ("font_hanken_grotesk", "files/HankenGrotesk-{Regular,Bold,Italic}.otf"),
    "Manrope": ("font_manrope", "files/Manrope-{Regular,Bold}.ttf"),
    "Fredoka One": ("font_fredoka_one", "files/FredokaOne-Regular.ttf"),
    "Liberation Sans": ("truetype/liberation", "LiberationSans-{Regular,Bold,Italic}.ttf"),
    "Liberation Serif": ("truetype/liberation", "LiberationSerif-{Regular,Bold,Italic}.ttf"),
    "Liberation Mono": ("truetype/liberation", "LiberationMono-{Regular,Bold}.ttf"),
    "Free Serif": ("truetype/freefont", "FreeSerif{,Bold,Italic}.ttf"),
    "Free Mono": ("truetype/freefont", "FreeMono{,Bold}.ttf"),
    "Open Sans": ("truetype/open-sans", "OpenSans-{Regular,Bold,Italic,Semibold}.ttf"),
    "Inconsolata": ("truetype/inconsolata", "Inconsolata.otf"),
    "Hack": ("truetype/hack", "Hack-{Regular,Bold}.ttf"),
    "Cantarell": ("opentype/cantarell", "Cantarell-{Regular,Bold}.otf"),
    "Comic Neue": ("opentype/comic-neue", "ComicNeue-{Regular,Bold,Italic}.otf"),
    "Linux Libertine": ("opentype/linux-libertine", "LinLibertine_{R,RB,RI}.otf"),
    "Linux Biolinum": ("opentype/linux-libertine", "LinBiolinum_{R,RB,RI}.otf"),
    "Courier Prime": ("opentype/courier-prime", "Courier Prime{, Bold}.otf"),
}
# No training picture shows these. From the Python package index, so that any machine can measure.
HELD_OUT = {
    "Source Sans Pro": ("font_source_sans_pro", "files/SourceSansPro-{Regular,Bold,It,Semibold}.ttf"),
    "Source Serif Pro": (
        "font_source_serif_pro",
        "files/SourceSerifPro-{Regular,Bold,It,Semibold}.ttf",
    ),
}


def font_files(families):
    """A list a family of the paths of its files. All must exist, or the pictures would change."""
    return [[str(path) for path in files(*where)] for where in families.values()]


def files(place, pattern):
    if "/" in place:
        folder = DEBIAN / place
    else:
        spec = find_spec(place)
        if spec is None:
            raise FileNotFoundError(f"fonts: the Python package of '{place}' is not installed")
        folder = Path(spec.origin).parent if spec.origin else Path(list(spec.submodule_search_locations)[0])
    head, _, rest = pattern.partition("{")
    styles, _, tail = rest.partition("}")
    paths = [folder / f"{head}{style}{tail}" for style in styles.split(",")]
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"fonts: '{path}' is missing; is its package installed?")
    return paths
