"""Names of robots that are written in many robots.txt files, and product tokens that are a part of them.

By the draft's version of 4 December 1996 a record names a robot if its ``User-agent`` value contains the robot's token
as a substring. So a token that is a part of common names is shut out wherever one of these robots is.
"""

from __future__ import annotations

_NAMES = """
008 adidxbot adsbot-google ahrefsbot alexibot amazonbot anthropic-ai applebot applebot-extended archive.org_bot
asterias baiduspider barkrowler bingbot blackwidow blexbot bullseye bunnyslippers bytespider ccbot chatgpt-user
cheesebot cherrypicker claude-web claudebot cohere-ai copyrightcheck cosmos crescent dataforseobot diffbot discobot
dittospyder dotbot duckduckbot emailcollector emailsiphon emailwolf erocrawler exabot extractorpro ezooms
facebookbot facebookexternalhit foobot gigabot google-extended googlebot googlebot-image googlebot-mobile googlebot-
news gptbot grapeshot grub-client harvest hloader httplib httrack humanlinks ia_archiver imagesiftbot infonavirobot
jennybot keyword-density larbin lexibot libweb libwww linkextractorpro linkscan linkwalker lnspiderguy lwp-trivial
magpie-crawler mata-hari mediapartners-google meta-externalagent miixpc mister-pix mj12bot moget msiecrawler msnbot
naverbot netants netmechanic nicerspro npbot nutch oai-searchbot offline-explorer omgilibot openfind perplexitybot
petalbot pinterest pinterestbot propowerbot prowebwalker proximic psbot python-urllib queryn-metasearch repomonkey
rogerbot screaming-frog-seo-spider scrapy semrushbot seokicks-robot serpstatbot seznambot sistrix sitebot
sitesnagger slurp sogou-spider spankbot spanner spbot suzuran szukacz teleport teleportpro telesoft teoma thenomad
tocrawl true_robot turingos turnitinbot twitterbot uptimerobot urly-warning voilabot webauto webbandit webcopier
webenhancer webreaper websauger website-quester webster-pro webstripper webzip wget xenu yacybot yahoo-mmcrawler
yandex yandexbot yeti youbot zeus zoominfobot zyborg
"""
#: The names that occur most in the robots.txt files of large sites, in lower case.
COMMON_NAMES = tuple(_NAMES.split())


def warning_about(token: str) -> str | None:
    """A sentence on a token that is a part of the names of other robots; None for a token that is not."""
    names = [name for name in COMMON_NAMES if token.lower() in name and token.lower() != name]
    if not token or not names:
        return None
    first = ", ".join(names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        f'the product token "{token}" is a part of the names of other robots ({first}{more}): by the 1996 draft their '
        "records in robots.txt apply to this crawler too, so it is shut out of many sites; choose a name of your own"
    )
